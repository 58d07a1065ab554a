import { z } from 'zod'
import { isLoopback } from './address-list.ts'

/** Whether a database server requires TLS of its clients. */
export const ServerTls = z.enum(['required', 'none'])
export type ServerTls = z.output<typeof ServerTls>

/** Whether clients of a server at this host need TLS. `tls` absent: required. Servers on a loopback address require none. */
export const requiresTls = ({ host, tls }: { readonly host: string; readonly tls?: ServerTls | undefined }): boolean =>
  tls !== 'none' && !isLoopback(host)
