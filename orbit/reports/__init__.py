"""What people look at: terminal renderings, tables, figures and HTML pages."""
