/** The longest body that is evidence, once it is decoded. */
export const EVIDENCE_BYTES_MAX = 10 * 1024 * 1024;
/** Characters of a clause's JSONPath. */
export const JSONPATH_LENGTH_MAX = 1_024;
/** How many arrays and objects a value of evidence may be inside of, to be read as JSON. */
export const DOCUMENT_DEPTH_MAX = 512;
