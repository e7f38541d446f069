// Where the service is. The page's <base> names the prefix it is mounted under, so every address is built from it.

/** The address of the application, with a slash at its end: `/` or `/p/shop/`. */
export const base: string = new URL(document.baseURI).pathname.replace(/[^/]*$/, "");

/** The address of the API. */
export const apiBase = `${base}api/v1`;
