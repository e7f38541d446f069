import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app";
import { askSession } from "./api/session";
import { applyTheme } from "./ui/theme";
import "./styles/tokens.css";
import "./styles/shell.css";
import "./styles/app.css";

applyTheme();
void askSession();
createRoot(document.getElementById("root") as HTMLElement).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
