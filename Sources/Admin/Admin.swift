// Admin
