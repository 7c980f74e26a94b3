import { checkForm } from "../core/check.ts";
import { form } from "../core/form.ts";
import { listForm } from "./list.ts";

export const checkListForm = form("CheckList", () => listForm(checkForm(), {}));
