import { z } from 'zod'

/** A certificate chain and its key, PEM. */
export const Pem = z.object({
  certificate: z.string().min(1),
  key: z.string().min(1),
  /** When it was obtained, as the Tunnel's status said when it was fetched; empty when it said nothing. RFC 3339 UTC. */
  obtainedAt: z.string(),
})
export type Pem = Readonly<z.output<typeof Pem>>

/** Where certificates outlive the process, by the name of their Secret. */
export interface PemStore {
  /** What was kept by the process before. */
  all(): ReadonlyMap<string, Pem>
  /** Undefined: it is of no use any more. */
  keep(name: string, pem: Pem | undefined): void
}
