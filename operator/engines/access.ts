import { addressList } from '../../crds/formats/address-list.ts'
import { rangesOf, textOf } from '../../crds/formats/address-range.ts'
import { MooringError } from '../../shared/errors.ts'
import { type AdminTarget, type EngineAdmin, EngineCode, LoginState, type Tenant } from './engine.ts'

/** Sources of a dedicated server, as in `spec.access` of its DatabaseServer. */
export interface AccessRule {
  /** Addresses and ranges outside the cluster that may connect. Undefined: all. An empty list: none. */
  readonly sources?: readonly string[] | undefined
  /** Whether the server has no address outside the cluster, so that no source outside may connect. */
  readonly isPrivate?: boolean | undefined
}

/** Admitted sources, as ranges in CIDR notation, sorted. Undefined: every address. */
export interface Admitted {
  /** Sources outside the cluster, for the NetworkPolicy and the Service. */
  readonly outside: readonly string[] | undefined
  /** Sources that the engine itself admits: those outside, and the `insiders` of {@link admittedSources}. */
  readonly engine: readonly string[] | undefined
}

/**
 * Returns the sources that a dedicated server admits. The rules of the NetworkPolicy, the Service and the engine derive from them. Pure.
 * `insiders` are ranges that the engine always admits; in a cluster these are the networks of all pods, and the NetworkPolicy rejects the
 * pods of other organizations. An invalid entry matches no address.
 */
export function admittedSources({ sources, isPrivate = false }: AccessRule, insiders: readonly string[]): Admitted {
  const outside = isPrivate ? [] : sources
  if (outside === undefined) return { outside: undefined, engine: undefined }
  return { outside: rangesOf(outside).map(textOf), engine: rangesOf([...outside, ...insiders]).map(textOf) }
}

/** Address of the clients of a published port: the port is on loopback, so they are all on this machine. */
const LOCAL = '127.0.0.1'

/**
 * Returns the sources that the engine of a server admits, see {@link admittedSources}. A server with a published port does not see the
 * addresses of its clients, which are all on this machine: it admits all of them or none. Pure.
 */
export function engineSources(rule: AccessRule, way: Pick<AdminTarget, 'insiders' | 'isPublished'>): Admitted['engine'] {
  const { engine } = admittedSources(rule, way.insiders ?? [])
  if (!way.isPublished || engine === undefined) return engine
  return isAdmitted(engine, LOCAL) ? undefined : []
}

/** Whether an address is one of the admitted sources. An IPv4-mapped IPv6 address counts as IPv4. */
export function isAdmitted(sources: Admitted['engine'], address: string): boolean {
  // An empty AddressList allows every address.
  return sources === undefined || (sources.length > 0 && addressList(sources).allows(address))
}

/**
 * Verifies a tenant's login in the catalog, without logging in: for an operator whose own address is not admitted.
 * @throws MooringError `login_refused`
 */
export async function verifyByCatalog(admin: Pick<EngineAdmin, 'find' | 'findChangedPasswords'>, tenant: Tenant): Promise<void> {
  const [{ database, login }, changed] = await Promise.all([admin.find(tenant.name), admin.findChangedPasswords([tenant])])
  if (database && login === LoginState.enabled && changed.length === 0) return
  throw new MooringError(EngineCode.loginRefused, `the login of ${tenant.name} does not work`)
}
