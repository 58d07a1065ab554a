import type { BackupPodSettings } from './settings.ts'

interface Port {
  readonly protocol: 'TCP' | 'UDP'
  readonly port: number
}

/** Rule for connections that a pod opens. */
export interface EgressRule {
  readonly to: readonly (
    | { readonly ipBlock: { readonly cidr: string } }
    | { readonly namespaceSelector: { readonly matchLabels: Readonly<Record<string, string>> } }
  )[]
  readonly ports: readonly Port[]
}

const DNS: EgressRule = {
  to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } }],
  ports: [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
  ],
}

/**
 * Returns the connections that the pod of a server with backups may open: to the repository, and to the cluster's DNS, by which the
 * repository's address is found. None with a volume.
 */
export function backupEgress({ url, egress, dns }: BackupPodSettings): readonly EgressRule[] {
  if (url === '') return []
  const rules = egress.map(({ cidr, port }): EgressRule => ({ to: [{ ipBlock: { cidr } }], ports: [{ protocol: 'TCP', port }] }))
  return dns ? [...rules, DNS] : rules
}
