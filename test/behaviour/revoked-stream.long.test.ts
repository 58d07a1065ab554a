import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDeployment } from '../support/deployment/deployment.ts'
import { expectSuccess, type Tenant } from '../support/api/tenant.ts'

const deployment = openDeployment()
let acme: Tenant
beforeAll(async () => {
  acme = await deployment.namespace()
})
afterAll(() => deployment[Symbol.asyncDispose]())

test('a stream ends soon after the deletion of its token', async () => {
  const admin = acme.as('admin')
  const body = { name: 'stream', role: 'viewer' }
  const { apiToken } = (await expectSuccess(admin('POST', `${acme.path}/api-tokens`, { body }))).body.data
  const { id } = await acme.tunnel()
  const { sharedUrl, ca } = deployment.installation
  const headers = { Authorization: `Bearer ${apiToken.token}` }
  const asked = request(`${sharedUrl}${acme.path}/tunnels/${id}/requests?follow=true`, { ca, headers }).end()
  const [stream] = (await once(asked, 'response')) as [IncomingMessage]
  expect(stream.statusCode).toBe(200)
  await expectSuccess(admin('DELETE', `${acme.path}/api-tokens/${apiToken.id}`))
  await once(stream.resume(), 'end')
})
