import { afterAll, describe, expect, test } from 'vitest'
import { codeOf } from '../../support/api/answers.ts'
import { expectSuccess } from '../../support/api/tenant.ts'
import { openDeployment } from '../../support/deployment/deployment.ts'
import { openMysql } from '../../support/families/family-client.ts'
import { motorsUnderTest } from '../../support/families/motors-under-test.ts'
import { nestedViews, TOP_VIEW } from '../../support/mysql/nested-views.ts'

const deployment = openDeployment()
afterAll(() => deployment[Symbol.asyncDispose]())

describe.each(motorsUnderTest().filter((motor) => /^(mysql|mariadb)-/.test(motor)))('on %s', (motor) => {
  test('a template whose views take too long to open is rejected, and its server goes on', async () => {
    const acme = await deployment.namespace()
    const editor = acme.as('editor')
    const source = await acme.instance({ motor })
    const session = await openMysql(source)
    for (const statement of nestedViews(13)) await session.query(statement)
    await session.end()
    const body = deployment.instanceBody({ identifier: 'copy', motor, template: source.id })
    const answer = await editor('POST', '/v1/instances', { body })
    expect(codeOf(answer)).toBe('400 invalid_request')
    expect(answer.body.error.details).toEqual([
      { field: 'template', message: expect.stringContaining(`the view ${TOP_VIEW} `) as string },
    ])
    // It is deleted after the answer.
    const left = async () => (await editor('GET', '/v1/instances?identifier=copy')).body.data.instances
    await expect.poll(left).toEqual([])
    await (await openMysql(await acme.instance({ motor }))).end()
    await (await openMysql(source)).end()
    await expectSuccess(editor('DELETE', `/v1/instances/${source.id}`))
  })
})
