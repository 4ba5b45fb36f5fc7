import PinfoldClient

let session = try SessionManager()
let request = try HTTPRequest(.get, "https://httpbin.org/get?name=Ada")
let response = try await session.data(for: request)
print(response.head.status.code, response.content.isEmpty ? "no content" : "with content")
