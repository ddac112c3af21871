// Before the first paint: the theme that was chosen, or none for the system's.
try {
  const theme = localStorage.getItem("redrive-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {}
