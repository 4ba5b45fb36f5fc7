import HTTPTypes
import TestSupport
import Testing

@testable import PinfoldClient
@testable import PinfoldImages

@Suite("A place for an image")
struct ImageSlotTests {
    /// The content displayed up to an image, or up to the second placeholder.
    private func shown(in slot: ImageSlot, upTo isLast: (ImageSlot.Content) -> Bool) async
        -> [String]
    {
        var seen: [String] = []
        for await content in slot.updates() {
            switch content {
            case .empty: seen.append("empty")
            case .placeholder: seen.append("placeholder")
            case .image: seen.append("image")
            }
            if isLast(content) { break }
        }
        return seen
    }

    private func isImage(_ content: ImageSlot.Content) -> Bool {
        if case .image = content { true } else { false }
    }

    @Test func `shows its placeholder, then the image`() async throws {
        try await ImageFixture.run { fixture in
            let slot = ImageSlot(downloader: fixture.downloader)
            #expect(slot.content == .empty)
            async let seen = shown(in: slot, upTo: isImage)
            slot.load(try fixture.request("/a"))
            #expect(await seen.suffix(2) == ["placeholder", "image"])
            #expect(!slot.isLoading)
            #expect(slot.error == nil)
            // From the cache, immediately.
            slot.load(nil)
            #expect(slot.content == .placeholder)
            slot.load(try fixture.request("/a"))
            #expect(isImage(slot.content))
        }
    }

    @Test func `ignores a repeat of the URL that is being loaded`() async throws {
        try await ImageFixture.run(held: true) { fixture in
            let slot = ImageSlot(downloader: fixture.downloader)
            let request = try fixture.request("/a")
            #expect(slot.load(request))
            #expect(!slot.load(request))
            #expect(fixture.downloader.downloads == (1, 0))
        }
    }

    @Test func `cancels the load before`() async throws {
        try await ImageFixture.run(held: true, maximumActive: 1) { fixture in
            let other = try fixture.ended("/first").1
            let slot = ImageSlot(downloader: fixture.downloader)
            slot.load(try fixture.request("/a"))
            slot.load(try fixture.request("/b"))
            #expect(fixture.downloader.downloads == (1, 1))
            async let seen = shown(in: slot, upTo: isImage)
            fixture.release()
            _ = try await other.value?.get()
            #expect(await seen.last == "image")
            #expect(fixture.server.requests.map(\.path) == ["/first", "/b"])
        }
    }

    @Test func `shows its placeholder if there is no image`() async throws {
        try await ImageFixture.run { fixture in
            let slot = ImageSlot(downloader: fixture.downloader)
            slot.load(try fixture.request("/a"))
            #expect(await shown(in: slot, upTo: isImage).last == "image")
            slot.load(try fixture.request("/missing"))
            #expect(slot.content == .placeholder)
            while slot.isLoading { await Task.yield() }
            #expect(slot.content == .placeholder)
            #expect(slot.error?.reason == .serialization)
        }
    }

    @Test func `stops loading when it is cancelled or released`() async throws {
        try await ImageFixture.run(held: true) { fixture in
            var slot: ImageSlot? = ImageSlot(downloader: fixture.downloader)
            slot?.load(try fixture.request("/a"))
            slot?.cancel()
            #expect(slot?.isLoading == false)
            #expect(slot?.content == .placeholder)
            slot?.load(try fixture.request("/b"))
            slot = nil
            fixture.release()
            while fixture.downloader.downloads.active > 0 { await Task.yield() }
            #expect(fixture.downloader.cache?.count == 0)
        }
    }
}
