// MetricsTests
