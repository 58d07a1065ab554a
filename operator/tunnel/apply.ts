import { randomBytes } from 'node:crypto'
import { Secret } from '../../crds/core.ts'
import { annotations, FINALIZER, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { MooringError } from '../../shared/errors.ts'
import { HOSTNAME_KEPT, Tunnel } from '../../crds/tunnel.ts'
import { ownCertificate } from '../../shared/edge-objects.ts'
import { type Decision, withCondition } from '../../store/conditions.ts'
import { isStoreError, keyOf } from '../../store/port.ts'
import { hostnameMark, markedHostname, certificateKey, certificateName, certificateSecret, urlOf } from './resources.ts'
import type { ObserveDeps } from './observe.ts'
import type { Action } from './plan.ts'

const HOSTNAME_BYTES = 8

type Of<Name extends Action['do']> = Extract<Action, { readonly do: Name }>

/** Carries out one action. @returns the resulting tunnel, if the action changed it */
export async function perform(deps: ObserveDeps, tunnel: Tunnel, action: Action): Promise<Tunnel | undefined> {
  switch (action.do) {
    case 'assign':
      return assign(deps, tunnel, action)
    case 'mark':
      return mark(deps, tunnel, action)
    case 'obtain':
      await obtain(deps, tunnel, action)
      return undefined
    case 'forget-certificate':
      await forgetCertificate(deps, tunnel)
      return undefined
    default:
      return settle(deps, tunnel, action.do)
  }
}

async function settle(
  { store }: ObserveDeps,
  tunnel: Tunnel,
  what: 'add-finalizer' | 'expire' | 'release',
): Promise<Tunnel | undefined> {
  const { uid, resourceVersion, finalizers = [] } = tunnel.metadata
  const key = keyOf(tunnel)
  try {
    if (what === 'add-finalizer')
      return await store.mergePatch(
        Tunnel,
        key,
        { metadata: { finalizers: [...finalizers, FINALIZER] } },
        { uid, resourceVersion },
      )
    // The precondition protects an expiry that was postponed a moment ago.
    if (what === 'expire') await store.delete(Tunnel, key, { uid, resourceVersion })
    else
      await store.mergePatch(Tunnel, key, { metadata: { finalizers: finalizers.filter((name) => name !== FINALIZER) } }, { uid })
    return undefined
  } catch (error) {
    if (!isStoreError(error, 'not_found')) throw error
    return undefined
  }
}

async function mark(deps: ObserveDeps, tunnel: Tunnel, { refused }: Of<'mark'>): Promise<Tunnel> {
  // Reported first: the new mark overwrites the rejected one.
  const { metadata: current } = refused ? await refuseMark(deps, tunnel, refused) : tunnel
  const { uid, resourceVersion, finalizers = [] } = current
  const metadata = {
    finalizers: [...new Set([...finalizers, FINALIZER])],
    annotations: { [annotations.hostname]: hostnameMark(deps.issuers.local.mac, tunnel.metadata, hostnameFor(deps, tunnel)) },
  }
  return deps.store.mergePatch(Tunnel, keyOf(tunnel), { metadata }, { uid, resourceVersion })
}

function refuseMark({ store, now }: ObserveDeps, tunnel: Tunnel, refused: Decision): Promise<Tunnel> {
  const { uid, resourceVersion, generation } = tunnel.metadata
  const stamp = { type: HOSTNAME_KEPT, generation, now: now() }
  const conditions = withCondition(tunnel.status?.conditions, refused, stamp)
  return store.patchStatus(Tunnel, keyOf(tunnel), { conditions }, { uid, resourceVersion })
}

/**
 * Returns the hostname of a tunnel: that of its mark, or 64 random bits that no other tunnel has. Hostnames are permanent and public, and
 * each belongs to one tunnel.
 */
function hostnameFor({ tunnels, issuers }: ObserveDeps, { status, metadata }: Tunnel): string {
  if (status?.hostname !== undefined) return status.hostname
  const isTaken = (name: string) => tunnels.countByIndex('hostname', name) > 0
  const marked = markedHostname(issuers.local.mac, metadata)
  return marked !== undefined && !isTaken(marked) ? marked : draw(isTaken)
}

/** Records the hostname. The precondition makes it the only one that the tunnel ever had. */
async function assign(deps: ObserveDeps, tunnel: Tunnel, { endpoint }: Of<'assign'>): Promise<Tunnel> {
  const hostname = hostnameFor(deps, tunnel)
  const { uid, resourceVersion } = tunnel.metadata
  return deps.store.patchStatus(
    Tunnel,
    keyOf(tunnel),
    {
      hostname,
      url: urlOf(endpoint, hostname),
      endpointRef: { name: endpoint.metadata.name },
      certificate: { status: 'obtaining', domain: certificateName(endpoint, hostname) },
    },
    { uid, resourceVersion },
  )
}

function draw(isTaken: (hostname: string) => boolean): string {
  for (;;) {
    const hostname = randomBytes(HOSTNAME_BYTES).toString('hex')
    if (!isTaken(hostname)) return hostname
  }
}

async function obtain({ store, issuers, now }: ObserveDeps, { status }: Tunnel, { endpoint, name }: Of<'obtain'>): Promise<void> {
  const issuer = issuers[endpoint.spec.issuer]
  if (!issuer) throw new MooringError('issuer_missing', `no issuer ${endpoint.spec.issuer} is set up`)
  const signed = await issuer.obtain(name)
  const secret = certificateSecret(endpoint, status?.hostname ?? '', { ...signed, at: now() })
  try {
    await store.create(Secret, secret)
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    const { data, metadata } = secret
    const { labels, annotations } = metadata
    await store.mergePatch(Secret, certificateKey(endpoint, status?.hostname ?? ''), { data, metadata: { labels, annotations } })
  }
}

/** Deletes the certificate of the tunnel. A wildcard certificate, shared by all tunnels of the endpoint, stays. */
async function forgetCertificate({ store }: ObserveDeps, { status }: Tunnel): Promise<void> {
  if (status?.hostname === undefined) return
  try {
    await store.delete(Secret, { namespace: SYSTEM_NAMESPACE, name: ownCertificate(status.hostname) })
  } catch (error) {
    if (!isStoreError(error, 'not_found')) throw error
  }
}
