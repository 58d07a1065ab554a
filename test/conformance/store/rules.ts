import { describe, expect, test } from 'vitest'
import { DedicatedDatabase } from '../../../crds/dedicated-database.ts'
import { Tunnel } from '../../../crds/tunnel.ts'
import { aRegion, expectStoreError, type Open, openTestStore, type TestStore } from './test-store.ts'

/** List of addresses; `create` creates an object with one entry. */
interface List {
  readonly field: string
  readonly create: (at: TestStore, name: string, entry: string) => Promise<unknown>
}

const LISTS: readonly List[] = [
  ...(['ingressIPWhitelist', 'sshIPWhitelist'] as const).map((list) => ({
    field: `spec.config.${list}`,
    create: ({ store, namespace }: TestStore, name: string, entry: string) =>
      store.create(Tunnel, { metadata: { namespace, name }, spec: { regionId: 1, config: { [list]: [entry] } } }),
  })),
  {
    field: 'spec.firewallRules',
    create: ({ store, namespace }, name, entry) => {
      const spec = { motor: 'postgresql-15.4.0', region: aRegion, plan: 'small', firewallRules: [{ cidr: entry }] } as const
      return store.create(DedicatedDatabase, { metadata: { namespace, name }, spec })
    },
  },
]

const GOOD = ['1.2.3.4', '1.2.3.4/32', '0.0.0.0/0', '10.1.2.0/23', '::1', '2001:DB8:0::/32', '::/0']
const BAD = ['1.2.3.4/0', '10.1.2.3/24', '10.1.3.0/22', '2001:db8::1/64', '::1/0', '10.1.2.0/33', 'here']

/** Rules that no schema can express. */
export function ruleClauses(open: Open): void {
  describe('rules', () => {
    test.each(LISTS)(
      '$field has only addresses, and ranges without address bits after their prefix',
      async ({ field, create }) => {
        await using at = await openTestStore(open)
        for (const [index, entry] of GOOD.entries()) await create(at, `good-${index}`, entry)
        for (const entry of BAD) {
          const error = await expectStoreError(create(at, 'bad', entry))
          expect([error.code, entry, error.message]).toEqual(['invalid', entry, expect.stringContaining(field)])
        }
      },
    )
  })
}
