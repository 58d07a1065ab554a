import { expect, test } from 'vitest'
import { region } from '../../test/builders/resources.ts'
import { EXAMPLE } from './openapi-schemas.ts'
import { createServedDocument } from './served-document.ts'

const document = { example: { region: EXAMPLE.region, motor: EXAMPLE.motor } }
const ID = '11111111-2222-4333-8444-555555555555'

test('the text is made once for a region, whatever else of its object changes, and anew for another region', () => {
  let regions = [region({ id: ID })]
  const served = createServedDocument(document, () => regions)
  const first = served()
  expect(JSON.parse(first.text)).toMatchObject({ example: { region: ID } })
  regions = [{ ...region({ id: ID }), status: { conditions: [] } }]
  // The same object: nothing was made.
  expect(served()).toBe(first)
  regions = [region({ id: '22222222-2222-4333-8444-555555555555' })]
  expect(served().text).toContain('22222222')
  expect(served().etag).not.toBe(first.etag)
  regions = []
  expect(JSON.parse(served().text)).toEqual(document)
})
