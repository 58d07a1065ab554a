const CODE = /^#code=([\w-]{1,256})$/

/** Takes the code of a sign-in link out of the address, before anything else runs, so that neither history nor bookmarks keep it. */
export function takeCode(): string | undefined {
  const code = CODE.exec(location.hash)?.[1]
  if (code !== undefined) history.replaceState(null, '', location.pathname)
  return code
}
