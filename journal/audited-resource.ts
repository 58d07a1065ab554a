import type { AuditRecord } from './port.ts'

export type Spec = Readonly<Record<string, unknown>>

interface Audited {
  readonly kind: string
  readonly metadata: { readonly uid: string; readonly name: string }
}

/** How an entry names a resource: by what its owner calls it, where it has such a name. */
export function auditedResource({ kind, metadata }: Audited, spec: Spec | undefined): AuditRecord['resource'] {
  const own = spec?.displayName ?? spec?.identifier
  return { kind, id: metadata.uid, name: typeof own === 'string' ? own : metadata.name }
}
