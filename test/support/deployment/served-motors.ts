import type { Body } from '../api/answers.ts'
import { createHttpsClient } from '../api/https-client.ts'
import { createTokens } from '../api/tenant.ts'
import type { Installation } from './installation.ts'

/** Reads the motors that the region of an installation serves. */
export async function readMotors(installation: Omit<Installation, 'motors'>): Promise<readonly string[]> {
  using client = createHttpsClient(installation.ca)
  const token = await createTokens(installation).mint({ subject: 'suite-motors', role: 'platform-admin' })
  const { text } = await client.send(`${installation.sharedUrl}/v1/regions`, {
    method: 'GET',
    headers: { Authorization: `Bearer ${token}` },
  })
  const { regions } = (JSON.parse(text) as Body).data
  return regions.find(({ id }) => id === installation.region.id)?.motors.map(({ id }) => id) ?? []
}
