/** Expression that computes for hours and looks for no KILL. */
export const STUBBORN = "SELECT LOCATE(CONCAT(REPEAT('a', 1900000), 'b'), REPEAT('a', 4000000))"
