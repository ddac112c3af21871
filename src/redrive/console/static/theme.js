// Before the first paint: that scripts run, and the theme that was chosen, or none for the system's.
document.documentElement.dataset.scripts = "on";
try {
  const theme = localStorage.getItem("redrive-theme");
  if (theme) document.documentElement.dataset.theme = theme;
} catch {}
