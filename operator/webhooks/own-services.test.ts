import { expect, test } from 'vitest'
import { SHARED_NAMESPACE, SYSTEM_NAMESPACE } from '../../crds/names.ts'
import type { Service } from '../kubernetes/kinds.ts'
import { createOwnServices } from './own-services.ts'

const service = (namespace: string, spec: object, ingress: readonly object[] = []) =>
  ({
    metadata: { namespace },
    spec: { ports: [{ port: 443 }], ...spec },
    status: { loadBalancer: { ingress } },
  }) as unknown as Service
const SERVICES = [
  service(SYSTEM_NAMESPACE, { clusterIP: '10.96.0.7' }, [{ ip: '192.168.0.9' }, { hostname: 'lb.example.com' }]),
  service(SHARED_NAMESPACE, { clusterIP: 'None' }),
  service(SHARED_NAMESPACE, { clusterIP: 'fd00::7' }),
]

test('the Services of Mooring and its own pod are listeners of Mooring, and other addresses are not', async () => {
  const list = (_kind: unknown, { namespace }: { readonly namespace?: string } = {}) =>
    Promise.resolve({ items: SERVICES.filter(({ metadata }) => metadata.namespace === namespace) })
  await using own = createOwnServices({ store: { list: list as never }, log: { warn: () => expect.fail() } })
  await own.refresh()
  const at = (address: string, port = 443) => own.hasAddress(address, port)
  expect([at('10.96.0.7'), at('10.96.0.7', 9464), at('fd00::7'), at('127.0.0.1', 9464), at('::1')]).toEqual([
    ...[true, true, true, true, true],
  ])
  expect([at('192.168.0.9'), at('192.168.0.9', 8080), at('10.96.0.8'), at('None')]).toEqual([true, false, false, false])
})
