import { createHmac } from 'node:crypto'

/** Name of the login of the exporter beside a dedicated server. No tenant’s name has an underscore. */
export const EXPORTER_USER = 'mooring_exporter'

/** Address from which the exporter logs in: it runs in the pod of the server. */
export const EXPORTER_SOURCE = '127.0.0.1'

/** Maximum connections of the exporter. A scrape uses one or two; scrapes may overlap. */
export const EXPORTER_CONNECTIONS = 5

/**
 * Returns the password of the exporter's login. It is derived from the administrator's password, so that a Secret that was deleted by hand is
 * restored unchanged, and the server needs no new password. It does not reveal the administrator's password.
 */
export function exporterPassword(adminPassword: string): string {
  return createHmac('sha256', adminPassword).update('mooring exporter').digest('base64url')
}
