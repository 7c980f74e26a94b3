export { type FaultyProxy, startFaultyProxy } from "../support/faulty-proxy.ts";
