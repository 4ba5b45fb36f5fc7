import PinfoldClient

let session = try SessionManager()
let events = session.events()

let request = try HTTPRequest(.get, "https://httpbin.org/get")
async let one = session.data(for: request)
async let other = session.data(for: request)
_ = try await (one, other)

session.invalidate()
for await event in events {
    switch event {
    case .didComplete(let end): print("completed", end.request.path ?? "")
    case .sessionInvalidated: print("ended")
    default: break
    }
}
