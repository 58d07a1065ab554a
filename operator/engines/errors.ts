/** Returns a function that wraps functions: each wrapped one throws what `convert` makes of its errors. */
export function errorConverter(convert: (error: unknown) => Error) {
  return <Args extends unknown[], Result>(run: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      try {
        return await run(...args)
      } catch (error) {
        throw convert(error)
      }
    }
}
