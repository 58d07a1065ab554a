import { expect, test } from 'vitest'
import { StoreError } from '../../store/port.ts'
import { toApiError } from './errors.ts'

test.each([
  { said: 'spec.displayName', field: 'name' },
  { said: 'spec.config.target', field: 'config.target' },
  { said: 'metadata.name', field: 'metadata.name' },
])('a store error about $said names the field $field of the request', ({ said, field }) => {
  const error = new StoreError('invalid', `Tunnel is invalid: ${said} is wrong`, {
    fields: [{ field: said, message: 'is wrong' }],
  })
  expect(toApiError(error)).toMatchObject({
    status: 400,
    message: `${field} is wrong`,
    details: [{ field, message: 'is wrong' }],
  })
})
