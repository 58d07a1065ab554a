import type { Secret } from '../../crds/core.ts'
import { HEADERS_USABLE, type Tunnel } from '../../crds/tunnel.ts'
import type { HeaderModification, StoredHeaderModification } from '../../crds/tunnel-config.ts'
import { MooringError } from '../../shared/errors.ts'
import { headerReferences, referringItems, valueOf } from '../../shared/header-values.ts'
import { conditionOf } from '../../store/conditions.ts'
import { addHeaderValues, drawKey, headerSecretName, pruneHeaderValues, readHeaderValues } from '../../store/header-secrets.ts'
import type { Store } from '../../store/port.ts'
import { ApiError } from '../http/errors.ts'

type Items = readonly HeaderModification[]

/** Values of headers, which the API keeps in a Secret beside the tunnel, so that a viewer who reads the tunnel by kubectl cannot read them. */
export interface TunnelHeaders {
  /** Returns the tunnel with literal values in place of references, for audit and for callers who may read secrets. A missing value stays a reference. */
  readonly withValues: (tunnel: Tunnel) => Promise<Tunnel>
  /** Returns a change of the headers by one request. */
  change(): HeaderChange
  /**
   * Stores the values of a tunnel that was created with {@link newItems}. A repeated request completes one that ended between the two writes.
   * @throws ApiError `conflict`; StoreError
   */
  fill(tunnel: Tunnel, items: Items): Promise<void>
}

/** Change of the headers of a tunnel. The values are stored before the tunnel refers to them, so each step may be the last. */
export interface HeaderChange {
  /** Stores the values of items, and returns the items for the tunnel. Called anew after a conflict. @throws ApiError `conflict`; StoreError */
  store(now: Tunnel, items: Items): Promise<readonly StoredHeaderModification[]>
  /** Removes values that the changed tunnel does not use any more. */
  finish(after: Tunnel): Promise<void>
}

export function createTunnelHeaders(store: Store): TunnelHeaders {
  /** @throws ApiError `conflict`; StoreError */
  async function add(tunnel: Tunnel, added: Readonly<Record<string, string>>): Promise<Secret | undefined> {
    try {
      return await addHeaderValues(store, tunnel, added)
    } catch (cause) {
      if (!(cause instanceof MooringError) || cause.code !== 'secret_name_taken') throw cause
      throw new ApiError('conflict', cause.message, { cause })
    }
  }

  return {
    async withValues(tunnel) {
      if (headerReferences(tunnel.spec.config).length === 0) return tunnel
      const { values } = await readHeaderValues(store, tunnel)
      const items = tunnel.spec.config.liveHeaderModifications.map((item): StoredHeaderModification => {
        const value = valueOf(item, values)
        return value === undefined ? item : { name: item.name, value, type: item.type }
      })
      return withItems(tunnel, items)
    },

    change() {
      let own: Secret | undefined
      return {
        async store(now, items) {
          const secret = headerSecretName(now.metadata.name)
          const { values, secrets } = await readHeaderValues(store, now)
          const known = { items: now.spec.config.liveHeaderModifications, values }
          const { items: referring, added } = referringItems(items, known, { secret, draw: drawKey })
          own = (await add(now, added)) ?? secrets.get(secret)
          return referring
        },
        async finish(after) {
          if (own) await pruneHeaderValues(store, after, own)
        },
      }
    },

    async fill(tunnel, items) {
      // A later change of the tunnel has stored its own values.
      if (tunnel.metadata.generation > 1) return
      const stored = tunnel.spec.config.liveHeaderModifications
      const added: Record<string, string> = {}
      for (const [index, { valueFrom }] of stored.entries()) {
        const value = items[index]?.value
        if (valueFrom && value !== undefined) added[valueFrom.secretKeyRef.key] = value
      }
      await add(tunnel, added)
    },
  }
}

const NOTHING = { items: [], values: new Map<string, string>() }

/** Returns the headers of a new tunnel of this name: their values are to be stored by `fill`, once the tunnel exists. */
export const newItems = (tunnel: string, items: Items): readonly StoredHeaderModification[] =>
  referringItems(items, NOTHING, { secret: headerSecretName(tunnel), draw: drawKey }).items

/** Returns a tunnel with other headers. Pure. */
export const withItems = (tunnel: Tunnel, liveHeaderModifications: readonly StoredHeaderModification[]): Tunnel => ({
  ...tunnel,
  spec: { ...tunnel.spec, config: { ...tunnel.spec.config, liveHeaderModifications } },
})

/** Whether the operator has read the header values of this generation, so that edges get them. */
export function hasHeaderValues({ spec, status, metadata }: Tunnel): boolean {
  const read = status?.headerValues
  if (headerReferences(spec.config).length === 0) return read === undefined
  return read !== undefined && read.observedGeneration >= metadata.generation
}

/** Whether, in addition, all values were there: a new tunnel exists for moments before its values do. */
export const hasAllHeaderValues = (tunnel: Tunnel): boolean =>
  hasHeaderValues(tunnel) && conditionOf(tunnel, HEADERS_USABLE) === undefined
