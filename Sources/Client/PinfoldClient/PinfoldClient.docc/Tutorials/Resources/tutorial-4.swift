import PinfoldClient

var configuration = SessionConfiguration()
configuration.requestTimeout = .seconds(20)
configuration.resourceTimeout = .seconds(120)
configuration.retries = RetryPolicy(maximumAttempts: 3, firstDelayMilliseconds: 10)
configuration.fields = [.userAgent: "tutorial/1"]

let session = try SessionManager(configuration: configuration)
let request = try HTTPRequest(.get, "https://httpbin.org/status/503")
let response = try await session.data(for: request)
print(response.head.status.code, response.metrics.transactions.count)
