// Light, dark, or as the system says. The choice is kept on this device.

export type Theme = "light" | "dark" | "system";
const KEY = "treadle.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const chosenTheme = (): Theme => (localStorage.getItem(KEY) as Theme | null) ?? "system";

export function applyTheme(theme: Theme = chosenTheme()): void {
  const shown = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  document.documentElement.dataset["theme"] = shown;
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme(theme);
}

dark.addEventListener("change", () => applyTheme());
