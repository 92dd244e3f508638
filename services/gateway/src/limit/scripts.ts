/** Counts an event in a window that begins with the first; answers the count and the milliseconds left. */
const HIT_FUNCTION = `
local function hit(key, window)
  local count = redis.call('INCR', key)
  local left = count > 1 and redis.call('PTTL', key) or -1
  if left < 0 then
    redis.call('PEXPIRE', key, window)
    left = tonumber(window)
  end
  return count, left
end`;

/** KEYS: counter. ARGV: window in ms. */
export const HIT_SCRIPT = `${HIT_FUNCTION}
return {hit(KEYS[1], ARGV[1])}`;

/**
 * KEYS: request counter, epoch, principal counter. ARGV: window and maximum of the first, expected epoch, window of the last. The last two
 * numbers are absent where the request is denied or the epoch is another: a missing one is.
 */
export const ADMIT_SCRIPT = `${HIT_FUNCTION}
local count, left = hit(KEYS[1], ARGV[1])
if count > tonumber(ARGV[2]) or redis.call('GET', KEYS[2]) ~= ARGV[3] then
  return {count, left}
end
return {count, left, hit(KEYS[3], ARGV[4])}`;

/** KEYS: counter. */
export const REFUND_SCRIPT = `
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
return count > 0 and redis.call('DECR', KEYS[1]) or 0`;
