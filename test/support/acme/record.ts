import { expect, vi } from 'vitest'
import { TunnelEndpoint } from '../../../crds/tunnel-endpoint.ts'
import { conditionOf } from '../../../store/conditions.ts'
import { openStateOf } from '../deployment/data-directory.ts'
import { LATER } from '../patience.ts'

/** Status of the endpoint of an embedded Mooring: the record of dns-persist-01 and the condition Ready. */
export async function recordStatus(dataDir: string) {
  await using copy = await openStateOf(dataDir)
  const endpoint = (await copy.store.list(TunnelEndpoint)).items.find(({ spec }) => spec.active)
  return { record: endpoint?.status?.acmeRecord, ready: endpoint && conditionOf(endpoint, 'Ready') }
}

/** Waits until the record is known. */
export const knownRecord = (dataDir: string) =>
  vi.waitFor(async () => {
    const { record, ready } = await recordStatus(dataDir)
    expect(record, JSON.stringify(ready)).toBeDefined()
    return record ?? { name: '', value: '' }
  }, LATER)
