import { Secret } from '../../crds/core.ts'
import { annotations, FINALIZER, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import { HOSTNAME_KEPT, Tunnel } from '../../crds/tunnel.ts'
import type { TunnelEndpoint } from '../../crds/tunnel-endpoint.ts'
import { ownCertificate } from '../../shared/edge-objects.ts'
import { type Decision, withCondition } from '../../store/conditions.ts'
import { ignoringGone, isStoreError, keyOf } from '../../store/port.ts'
import { certificateId } from '../acme/issued-certificate.ts'
import { orderFor } from './acme-certificate.ts'
import {
  hostnameMark,
  markedHostname,
  certificateKey,
  certificateName,
  certificateSecret,
  type SignedCertificate,
  urlOf,
} from './resources.ts'
import { stepDone } from '../reporter.ts'
import { deleteCopy, hasReferences, moveLiterals } from './header-values.ts'
import { drawHostname, isHostnameTaken } from './hostnames.ts'
import { certificateIn, type ObserveDeps } from './observe.ts'
import type { Action } from './plan.ts'
import { NOT_CONNECTED } from './presence.ts'

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
    case 'order':
      await order(deps, tunnel, action)
      return undefined
    case 'install':
      await install(deps, tunnel, action)
      return undefined
    case 'forget-certificate':
      await forgetCertificate(deps, tunnel)
      return undefined
    case 'withdraw':
      return withdraw(deps, tunnel)
    case 'move-headers':
      return moveLiterals(deps.store, tunnel)
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
 * Returns the hostname of a tunnel: that of its mark, or 64 random bits that no other tunnel or database has. Hostnames are permanent and
 * public, and each belongs to one tunnel or database.
 */
function hostnameFor(deps: ObserveDeps, { status, metadata }: Tunnel): string {
  if (status?.hostname !== undefined) return status.hostname
  const marked = markedHostname(deps.issuers.local.mac, metadata)
  return marked !== undefined && !isHostnameTaken(deps, marked) ? marked : drawHostname(deps)
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

function withdraw({ store }: ObserveDeps, tunnel: Tunnel): Promise<Tunnel> {
  const { uid, resourceVersion } = tunnel.metadata
  return store.patchStatus(Tunnel, keyOf(tunnel), { endpointRef: null, ...NOT_CONNECTED }, { uid, resourceVersion })
}

async function obtain(deps: ObserveDeps, { status }: Tunnel, { endpoint, name }: Of<'obtain'>): Promise<void> {
  const { local, acme } = deps.issuers
  const hostname = status?.hostname ?? ''
  await keep(deps, { endpoint, hostname, signed: { ...(await local.obtain(name)), at: deps.now() } })
  // An order of the time in which the endpoint had another issuer.
  await acme?.forget(certificateKey(endpoint, hostname).name)
}

/** Requests an order, unless another tunnel of the endpoint has installed the shared certificate meanwhile. */
async function order(deps: ObserveDeps, tunnel: Tunnel, action: Of<'order'>): Promise<void> {
  const { issuers, isShared = () => false } = deps
  if (await hasShared(deps, action.endpoint)) return
  const request = orderFor(tunnel, { ...action, isShared: isShared() })
  if (request) issuers.acme?.request(request)
}

/** Whether the endpoint has a shared certificate that is not due for renewal. */
async function hasShared(deps: ObserveDeps, endpoint: TunnelEndpoint): Promise<boolean> {
  if (endpoint.spec.certificates !== 'wildcard') return false
  const secret = await deps.store.get(Secret, certificateKey(endpoint, ''))
  const held = secret && certificateIn(secret, deps, { endpoint, hostname: '' })
  return held !== undefined && held.fits && held.renewAt > deps.now().getTime()
}

/** Stores the certificate of an order, then deletes the order. */
async function install(deps: ObserveDeps, { status }: Tunnel, { endpoint }: Of<'install'>): Promise<void> {
  const { acme } = deps.issuers
  const hostname = status?.hostname ?? ''
  const { name } = certificateKey(endpoint, hostname)
  const { pair, directory = '' } = (await acme?.progress(name)) ?? {}
  if (!pair) return
  const id = await certificateId(pair.certificate)
  await keep(deps, { endpoint, hostname, signed: { ...pair, at: deps.now(), acme: { directory, id } } })
  stepDone('tunnel.installed', name)
  await acme?.forget(name)
}

interface Kept {
  readonly endpoint: TunnelEndpoint
  readonly hostname: string
  readonly signed: SignedCertificate
}

async function keep({ store }: ObserveDeps, { endpoint, hostname, signed }: Kept): Promise<void> {
  const secret = certificateSecret(endpoint, hostname, signed)
  try {
    await store.create(Secret, secret)
  } catch (error) {
    if (!isStoreError(error, 'already_exists')) throw error
    const { data, metadata } = secret
    const { labels, annotations: noted } = metadata
    // Null removes what an earlier certificate had.
    const former = { [annotations.acmeDirectory]: null, [annotations.acmeId]: null, [annotations.copiedFrom]: null }
    const patch = { ...former, ...noted } as Readonly<Record<string, string>>
    await store.mergePatch(Secret, certificateKey(endpoint, hostname), { data, metadata: { labels, annotations: patch } })
  }
}

/** Deletes the certificate and the header values of the tunnel. A wildcard certificate, shared by all tunnels of the endpoint, stays. */
async function forgetCertificate({ store, issuers }: ObserveDeps, tunnel: Tunnel): Promise<void> {
  const { status } = tunnel
  if (status?.hostname === undefined) return
  if (status.headerValues !== undefined || hasReferences(tunnel)) await deleteCopy(store, status.hostname)
  await issuers.acme?.forget(ownCertificate(status.hostname))
  await ignoringGone(store.delete(Secret, { namespace: SYSTEM_NAMESPACE, name: ownCertificate(status.hostname) }))
}
