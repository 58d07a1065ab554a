import { expect, vi } from 'vitest'
import type { Tunnel } from '../api/answers.ts'
import type { MortalMooring } from '../deployment/mortal-mooring.ts'
import { LATER } from '../patience.ts'

const TUNNELS = '/v1/organizations/default/namespaces/default/tunnels'

/** Requests a tunnel; a repeated request has the same answer. */
export const requestTunnel = (mooring: MortalMooring) =>
  mooring.call('POST', TUNNELS, {
    body: { name: 'one', regionId: mooring.living().ready.regionId },
    headers: { 'Idempotency-Key': 'one' },
  })

/** Waits until the tunnel has a valid wildcard certificate. */
export const untilWildcard = (mooring: MortalMooring, { id }: Tunnel) =>
  vi.waitFor(async () => {
    const { certificate } = (await mooring.call('GET', `${TUNNELS}/${id}/certificate`)).body.data
    expect(certificate).toMatchObject({ status: 'valid', domain: '*.tunnel.example.test' })
  }, LATER)
