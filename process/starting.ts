/** Starts parts, each put onto `cleanup` as it starts, so that they stop in the opposite order. When one fails, those before it are stopped first. */
export async function starting<T>(startParts: (cleanup: AsyncDisposableStack) => Promise<T>): Promise<T> {
  const cleanup = new AsyncDisposableStack()
  try {
    return await startParts(cleanup)
  } catch (error) {
    await cleanup.disposeAsync()
    throw error
  }
}
