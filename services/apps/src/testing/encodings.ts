/** The base64 characters that stand for a text whatever bytes come before and after it. */
function base64Cores(text: string): string[] {
  return [0, 1, 2].map((offset) => {
    const padded = Buffer.concat([Buffer.alloc(offset), Buffer.from(text)]);
    const encoded = padded.toString('base64').replace(/=+$/, '');
    // A character holds six bits; the ones that also hold bits of a neighbour are cut off.
    return encoded.slice(Math.ceil((offset * 8) / 6), Math.floor((padded.length * 8) / 6));
  });
}

/** What a text looks like in clear, in hex, and in base64 and base64url at any offset; lower case where case does not matter. */
export function encodingsOf(text: string): string[] {
  const base64 = base64Cores(text);
  const hex = Buffer.from(text).toString('hex');
  const reversed = [...text].reverse().join('');
  const base64url = base64.map((core) => core.replaceAll('+', '-').replaceAll('/', '_'));
  return [text, reversed, hex, hex.toUpperCase(), ...base64, ...base64url];
}
