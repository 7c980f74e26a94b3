import type { BackupResource } from "../services/admin/backup.ts";

type KeyFileName = BackupResource["keys"][number];

/** For each key file: what it gives access to, the setting that can replace it, and what fails without it. */
export const KEY_FILES: Readonly<Record<KeyFileName, { can: string; setting: string; without: string }>> = {
  "master.key": {
    can: "read the webhook secrets",
    setting: "HOLDFAST_MASTER_KEY",
    without: "the webhook secrets cannot be read, and the server does not start while an endpoint needs one",
  },
  "signing.key": {
    can: "sign vouchers, receipts and checkpoints as this instance",
    setting: "HOLDFAST_SIGNING_KEY",
    without:
      "the server makes a new one, and the vouchers and receipts that were signed before no longer verify",
  },
  "push.key": {
    can: "send push notices as this instance",
    setting: "HOLDFAST_PUSH_KEY",
    without: "the server makes a new one, and everybody adds their devices for push notices again",
  },
};

export const keyFileNames = Object.keys(KEY_FILES) as readonly KeyFileName[];
