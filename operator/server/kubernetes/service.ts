import type { V1Service } from '@kubernetes/client-node'
import { childMetadata, childNames, selectorOf } from './names.ts'
import type { Plain } from '../../kubernetes/plain.ts'
import type { DesiredServer } from './desired-server.ts'

/**
 * Service for callers and the operator. Traffic from outside goes to the server's own node and keeps its source address, so that the
 * NetworkPolicy distinguishes callers from pods of other tenants.
 */
export function serviceOf({ server, engine, exposure }: DesiredServer): Plain<V1Service> {
  const { name } = server.metadata
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: childMetadata(server, childNames(name).service),
    spec: {
      type: exposure,
      selector: selectorOf(name),
      ports: [portOf(engine)],
      ...(exposure !== 'ClusterIP' && { externalTrafficPolicy: 'Local' }),
    },
  }
}

/** Headless Service that gives the pod its DNS name; no client uses it. */
export function podsServiceOf({ server, engine }: DesiredServer): Plain<V1Service> {
  const { name } = server.metadata
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: childMetadata(server, childNames(name).pods),
    spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: selectorOf(name), ports: [portOf(engine)] },
  }
}

const portOf = ({ name, port }: DesiredServer['engine']) => ({ name, port, targetPort: port, protocol: 'TCP' })
