/**
 * Retention of records in days, the same in SQLite and PostgreSQL: see docs/api.md, "Request log and statistics" and "Audit log".
 */

/** Retention of requests. A day of requests is removed as a whole, once its last request is this old. */
export const REQUEST_DAYS = 7
/** Retention of connections and of the sums of requests by minute. */
export const EVENT_DAYS = 90
/** Retention of audit entries. */
export const AUDIT_DAYS = 400
/** Retention of request counts by address and minute, which serve the span of the request log only. */
export const CLIENT_MINUTE_DAYS = REQUEST_DAYS + 1
