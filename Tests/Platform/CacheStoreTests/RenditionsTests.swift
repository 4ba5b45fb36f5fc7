import CachePolicy
import CacheTestSupport
import Locking
import TestSupport
import Testing

@testable import CacheStore

@Suite("Renditions beside stored responses")
struct RenditionsTests {
    private let form: Renditions.Form = 1

    private func stored(
        _ store: CacheStore, _ url: String = "http://a/", _ count: Int = 1000
    ) throws -> CachedResponse {
        store.put(url, body(count))
        return try #require(store.inMemory(url).first)
    }

    private func ready(_ response: CachedResponse) -> [UInt8]? {
        guard case .ready(let body) = response.forms.renditions.state(form) else { return nil }
        return Array(body.bytes)
    }

    /// Makes one, as the one who must.
    @discardableResult
    private func make(
        _ store: CacheStore, of response: CachedResponse, _ content: [UInt8]
    ) -> HeapBody? {
        guard case .none = response.forms.renditions.begin(form) else {
            Issue.record("somebody makes it already")
            return nil
        }
        return store.endRendition(form, of: response, with: .made(content))
    }

    @Test func `one makes it, and those who ask meanwhile are told`() throws {
        let store = CacheStore(options: .small())
        let response = try stored(store)
        let renditions = response.forms.renditions
        let told = Locked<[[UInt8]?]>([])
        func begin() -> Renditions.State {
            renditions.begin(form) { body in
                told.withLock { $0.append(body.map { Array($0.bytes) }) }
            }
        }
        guard case .none = begin() else {
            Issue.record("nobody has begun")
            return
        }
        for _ in 0..<3 {
            guard case .underWay = begin() else {
                Issue.record("it is under way")
                return
            }
        }
        store.endRendition(form, of: response, with: .made([1, 2, 3]))
        #expect(told.withLock { $0 } == [[1, 2, 3], [1, 2, 3], [1, 2, 3]])
        guard case .ready = begin() else {
            Issue.record("it is ready")
            return
        }
        #expect(told.withLock { $0.count } == 3)
        #expect(ready(response) == [1, 2, 3])
    }

    @Test func `what cannot be made is not tried again, and what was given up is`() throws {
        let store = CacheStore(options: .small())
        let response = try stored(store)
        let renditions = response.forms.renditions
        _ = renditions.begin(form)
        store.endRendition(form, of: response, with: .givenUp)
        guard case .none = renditions.begin(form) else {
            Issue.record("another attempt is possible")
            return
        }
        store.endRendition(form, of: response, with: .impossible)
        guard case .impossible = renditions.begin(form) else {
            Issue.record("it is tried again")
            return
        }
        // Another form is another matter.
        guard case .none = renditions.begin(form + 1) else {
            Issue.record("the other form was not tried")
            return
        }
    }

    @Test func `its memory counts as that of the response, and goes with it`() throws {
        let store = CacheStore(options: .small())
        let response = try stored(store)
        let before = store.statistics().memoryBytes
        let made = try #require(make(store, of: response, body(5000)))
        #expect(store.statistics().memoryBytes == before + made.keptBytes)
        store.drop("http://a/")
        #expect(store.statistics().memoryBytes == 0)
        let next = try stored(store)
        #expect(ready(next) == nil)
    }

    @Test func `a response that only has a new head keeps it`() throws {
        let store = CacheStore(options: .small())
        let response = try stored(store)
        make(store, of: response, body(5000))
        let total = store.statistics().memoryBytes
        let confirmed = try store.confirm(response)
        #expect(ready(confirmed) == body(5000))
        // The heads differ in their lengths.
        #expect(abs(store.statistics().memoryBytes - total) < 1000)
        store.drop("http://a/")
        #expect(store.statistics().memoryBytes == 0)
    }

    @Test func `one that is made while the head is replaced is kept beside the new one`() throws {
        let store = CacheStore(options: .small())
        let response = try stored(store)
        _ = response.forms.renditions.begin(form)
        let confirmed = try store.confirm(response)
        store.endRendition(form, of: response, with: .made(body(5000)))
        #expect(ready(confirmed) == body(5000))
        store.drop("http://a/")
        #expect(store.statistics().memoryBytes == 0)
    }

    @Test func `it is not kept for a response that is gone, nor if both are too large`() throws {
        let store = CacheStore(options: .small())
        let gone = try stored(store)
        store.drop("http://a/")
        #expect(make(store, of: gone, body(5000))?.count == 5000)
        #expect(ready(gone) == nil)
        #expect(store.statistics().memoryBytes == 0)
        let response = try stored(store, "http://b/", 300_000)
        let before = store.statistics().memoryBytes
        #expect(make(store, of: response, body(300_000))?.count == 300_000)
        #expect(ready(response) == nil)
        #expect(store.statistics().memoryBytes == before)
    }

    @Test func `many of them displace other responses, never exceeding the limit`() throws {
        let options = CacheStoreOptions.small()
        let store = CacheStore(options: options)
        for index in 0..<100 {
            let response = try stored(store, "http://a/\(index)", 20_000)
            make(store, of: response, body(100_000))
            #expect(store.statistics().memoryBytes <= options.memoryBytes)
        }
        #expect(store.statistics().memoryEvictions > 0)
        for index in 0..<100 { store.drop("http://a/\(index)") }
        #expect(store.statistics().memoryBytes == 0)
    }

    @Test func `heads of forms are kept and counted once, and not for another head`() throws {
        let store = CacheStore(options: .small())
        let response = try stored(store)
        let before = store.statistics().memoryBytes
        let made = FormHead(bytes: head(), metadata: metadata(head()))
        for _ in 0..<3 { store.keep(made, form, beside: response) }
        #expect(response.forms.head(form) === made)
        #expect(store.statistics().memoryBytes == before + made.keptBytes)
        let confirmed = try store.confirm(response)
        #expect(confirmed.forms.head(form) == nil)
        store.drop("http://a/")
        #expect(store.statistics().memoryBytes == 0)
        store.keep(made, form, beside: confirmed)
        #expect(confirmed.forms.head(form) == nil)
        #expect(store.statistics().memoryBytes == 0)
    }

    @Test func `what is of no use unless it is kept is made once`() throws {
        let store = CacheStore(options: .small())
        let response = try stored(store, "http://b/", 300_000)
        let renditions = response.forms.renditions
        _ = renditions.begin(form)
        store.endRendition(form, of: response, with: .made(body(300_000)), isOfUseOnce: false)
        guard case .impossible = renditions.state(form) else {
            Issue.record("it would be made again")
            return
        }
        #expect(store.keepsInMemory(response))
        store.drop("http://b/")
        #expect(!store.keepsInMemory(response))
    }

    @Test(arguments: [0, 1000, 40_000])
    func `content in memory can be read as a whole, wherever it is`(count: Int) throws {
        let store = CacheStore(options: .small())
        let response = try stored(store, "http://a/", count)
        #expect(response.hasContentInMemory)
        #expect(response.withContent { Array($0) } == body(count))
    }
}
