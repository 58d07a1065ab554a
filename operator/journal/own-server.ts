import { Secret } from '../../crds/core.ts'
import { DatabaseServer } from '../../crds/database-server.ts'
import { MOTORS, type Motor, partsOf } from '../../crds/motor.ts'
import { FINALIZER, JOURNAL_SERVER, SHARED_NAMESPACE } from '../../crds/names.ts'
import { type Region, regionsInForce } from '../../crds/region.ts'
import type { Cache } from '../../store/cache.ts'
import { isReady } from '../../store/conditions.ts'
import { isStoreError, type Store } from '../../store/port.ts'
import type { KeyPair } from '../certificates/local-ca.ts'
import type { AdminTarget } from '../engines/engine.ts'
import { decodeSecret } from '../secret-data.ts'
import { adminSecretName } from '../server/credentials.ts'
import { serviceName } from '../server/kubernetes/addresses.ts'
import { Service } from '../kubernetes/kinds.ts'

/** Capacity of the server, which sizes its connection slots: twelve per unit. */
const CAPACITY = 20
const PORT = 5_432
const KEY = { namespace: SHARED_NAMESPACE, name: JOURNAL_SERVER }

export interface OwnServerDeps {
  readonly store: Store
  readonly regions: Cache<typeof Region>
  readonly servers: Cache<typeof DatabaseServer>
  /** CA, in PEM, of the server's certificate. */
  readonly ca: () => string
  /** Client certificate by which the server authenticates the operator. */
  readonly adminCertificate: () => Promise<KeyPair>
  /** How the operator dials the server: by the name or the address of its Service. */
  readonly dial: 'name' | 'address'
}

/** Database server of the journal, when Mooring runs it. */
export interface OwnServer {
  /** Host name for pods, also while the server is down. */
  readonly host: string
  readonly port: number
  /** Creates the server when it is missing. @returns whether it runs @throws StoreError */
  ensure(): Promise<boolean>
  /** Administrator's login of the operator; undefined while it is unknown. @throws StoreError */
  admin(): Promise<AdminTarget | undefined>
}

export function createOwnServer({ store, regions, servers, ca, adminCertificate, dial }: OwnServerDeps): OwnServer {
  const host = serviceName(KEY)

  async function make(): Promise<void> {
    const placement = placementFor(regionsInForce(regions.list()))
    // Without a region there are no tunnels either; the next reconcile finds a new region.
    if (!placement) return
    try {
      await store.create(DatabaseServer, {
        metadata: { ...KEY, finalizers: [FINALIZER] },
        spec: { motor: placement.motor, region: placement.region.spec.id, tenancy: 'internal', capacity: CAPACITY },
      })
    } catch (error) {
      if (!isStoreError(error, 'already_exists')) throw error
    }
  }

  return {
    host,
    port: PORT,
    async ensure() {
      const server = servers.get(KEY)
      if (!server) await make()
      return server !== undefined && isReady(server) && server.spec.tenancy === 'internal'
    },
    async admin() {
      const secret = await store.get(Secret, { namespace: SHARED_NAMESPACE, name: adminSecretName(JOURNAL_SERVER) })
      const [user, password] = ['username', 'password'].map((key) => secret && decodeSecret(secret.data, key))
      const address = dial === 'name' ? host : (await store.get(Service, KEY))?.spec.clusterIP
      if (user === undefined || password === undefined || address === undefined) return undefined
      return { host: address, port: PORT, user, password, ca: ca(), client: await adminCertificate() }
    },
  }
}

/** Region and motor of the journal's server: the newest PostgreSQL in the region with the lowest number that has one. Pure. */
export function placementFor(regions: readonly Region[]): { readonly region: Region; readonly motor: Motor } | undefined {
  const preferred = MOTORS.filter((motor) => partsOf(motor).family === 'postgresql').toReversed()
  for (const region of regions.toSorted((a, b) => a.spec.regionId - b.spec.regionId)) {
    const motor = preferred.find((desired) => region.spec.motors.some(({ id }) => id === desired))
    if (motor && region.metadata.deletionTimestamp === undefined) return { region, motor }
  }
  return undefined
}
