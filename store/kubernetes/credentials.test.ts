import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadClusterConfig } from './credentials.ts'

const POD = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' }
const temporary = () => mkdtempDisposable(join(tmpdir(), 'cluster-config-'))

test('a pod uses its service account, and reads each token that kubelet renews', async () => {
  await using dir = await temporary()
  await writeFile(join(dir.path, 'ca.crt'), 'the CA')
  const config = await loadClusterConfig(POD, dir.path)
  expect(config.getCurrentCluster()?.server).toBe('https://10.0.0.1:443')
  for (const token of ['first', 'second']) {
    await writeFile(join(dir.path, 'token'), `${token}\n`)
    const options: RequestOptions = {}
    await config.applyToHTTPSOptions(options)
    expect(options).toMatchObject({ ca: 'the CA', headers: { Authorization: `Bearer ${token}` } })
  }
})

test('the server URL has an IPv6 address in brackets', async () => {
  const config = await loadClusterConfig({ ...POD, KUBERNETES_SERVICE_HOST: 'fd00::1' })
  expect(config.getCurrentCluster()?.server).toBe('https://[fd00::1]:443')
})

test('a kubeconfig takes precedence over the service account', async () => {
  await using dir = await temporary()
  const path = join(dir.path, 'config')
  await writeFile(
    path,
    JSON.stringify({
      clusters: [{ name: 'c', cluster: { server: 'https://api.test' } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      users: [{ name: 'u', user: {} }],
      'current-context': 'x',
    }),
  )
  const config = await loadClusterConfig({ ...POD, KUBECONFIG: path })
  expect(config.getCurrentCluster()?.server).toBe('https://api.test')
})

test.each([
  { when: 'there is no kubeconfig and no pod', env: {}, says: 'KUBECONFIG' },
  { when: 'the kubeconfig does not exist', env: { KUBECONFIG: '/nowhere' }, says: '/nowhere' },
])('the error says when $when', async ({ env, says }) => {
  await expect(loadClusterConfig(env)).rejects.toMatchObject({
    code: 'invalid_settings',
    message: expect.stringContaining(says) as string,
  })
})
