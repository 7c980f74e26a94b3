/** Characters of a clause's JSONPath. */
export const JSONPATH_LENGTH_MAX = 1_024;
