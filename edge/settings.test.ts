import { expect, test } from 'vitest'
import { parseSettings } from './settings.ts'

test('a pod sets its name and endpoint; all other settings have defaults', () => {
  const parsed = parseSettings([], { POD_NAME: 'edge-main-x', MOORING_ENDPOINT: 'main' })
  expect(parsed).toMatchObject({
    ok: {
      ...{ endpoint: 'main', podName: 'edge-main-x', listen: '0.0.0.0' },
      ...{ sshPort: 22_222, httpPort: 28_080, httpsPort: 28_443, meshPort: 28_444, metricsPort: 9_464 },
      ...{ hostKeys: '/etc/mooring/host-keys', meshFiles: '/etc/mooring/mesh', journalFiles: '/etc/mooring/journal' },
      ...{ dataDir: '/var/lib/mooring', drainSeconds: 45 },
    },
  })
})

test.each([
  { does: 'no endpoint', env: {}, said: /--endpoint \(MOORING_ENDPOINT in the environment\) must be given/ },
  {
    does: 'an invalid address',
    env: { MOORING_ENDPOINT: 'main', MOORING_LISTEN: 'here' },
    said: /--listen.*must be an IP address/,
  },
  { does: 'one port twice', env: { MOORING_ENDPOINT: 'main', MOORING_MESH_PORT: '22222' }, said: /must be another port/ },
])('$does ends the start with an error message', ({ env, said }) => {
  expect(parseSettings([], env)).toMatchObject({ exit: 2, text: expect.stringMatching(said) as string })
})
