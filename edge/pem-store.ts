import { z } from 'zod'

/** Certificate chain and its private key, PEM. */
export const Pem = z.object({
  certificate: z.string().min(1),
  key: z.string().min(1),
  /**
   * Time the certificate was obtained, RFC 3339 UTC, as the Tunnel's status reported it at the fetch. Empty when the status reported
   * none.
   */
  obtainedAt: z.string(),
})
export type Pem = Readonly<z.output<typeof Pem>>

/** Storage in which certificates outlive the process, by the name of their Secret. */
export interface PemStore {
  /** Returns the certificates that the previous process stored. */
  all(): ReadonlyMap<string, Pem>
  /** Stores a certificate; `undefined` deletes it. */
  keep(name: string, pem: Pem | undefined): void
}
