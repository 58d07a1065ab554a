/** How many days records are kept (design, "Journal"), whichever database keeps them. */

/** Requests; a day of them goes as a whole, once its last one is that old. */
export const REQUEST_DAYS = 7
/** Connections, and sums of requests by the minute. */
export const EVENT_DAYS = 90
export const AUDIT_DAYS = 400
/** Counts by address and minute, which serve only what the request log still shows. */
export const CLIENT_MINUTE_DAYS = REQUEST_DAYS + 1
