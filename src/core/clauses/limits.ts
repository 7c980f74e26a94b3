/** The longest body that is evidence, once it is decoded. */
export const EVIDENCE_BYTES_MAX = 10 * 1024 * 1024;
/** Characters of a clause's JSONPath. */
export const JSONPATH_LENGTH_MAX = 1_024;
