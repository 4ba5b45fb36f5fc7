import PinfoldClient

var configuration = SessionConfiguration()
configuration.securityPolicy = SecurityPolicy(
    mode: .publicKey,
    pins: [try CertificatePin("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")])
let session = try SessionManager(configuration: configuration)

do {
    _ = try await session.data(for: try HTTPRequest(.get, "https://httpbin.org/get"))
} catch {
    print(error.reason, error.presentedPins)
}
