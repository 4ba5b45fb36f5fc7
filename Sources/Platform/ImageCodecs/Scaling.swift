extension Raster {
    /// The size to which an image of `width` × `height` is scaled down so that it fits the maximum,
    /// keeping its proportions, at least one pixel each way; `nil` if it fits as it is.
    package static func size(
        of width: Int, _ height: Int, within maximumWidth: Int, _ maximumHeight: Int
    ) -> (width: Int, height: Int)? {
        guard width > maximumWidth || height > maximumHeight else { return nil }
        let maximumWidth = max(1, min(maximumWidth, width))
        let maximumHeight = max(1, min(maximumHeight, height))
        // Which side exceeds its maximum by the larger factor.
        if width * maximumHeight >= height * maximumWidth {
            return (maximumWidth, max(1, (height * maximumWidth + width / 2) / width))
        }
        return (max(1, (width * maximumHeight + height / 2) / height), maximumHeight)
    }

    /// The image in fewer pixels: each is the mean of those that it covers, weighted by the covered
    /// area and by their alpha. Integer arithmetic only. Never enlarges.
    package func scaled(to newWidth: Int, _ newHeight: Int) throws(ImageCodecError) -> Raster {
        precondition((1...width).contains(newWidth) && (1...height).contains(newHeight))
        let result = try Raster(width: newWidth, height: newHeight)
        result.profile = profile
        // Lengths are counted in units: a source pixel has as many as the result has pixels, and a
        // result pixel as many as the source has pixels. A result pixel therefore has width ×
        // height units of area, and a sum stays below 2^16 times that.
        var row = [UInt64](repeating: 0, count: newWidth * 4)
        var sums = row
        var y = 0
        var heightLeft = newHeight
        sumColumns(of: 0, into: &row)
        for newY in 0..<newHeight {
            for index in sums.indices { sums[index] = 0 }
            var needed = height
            while needed > 0 {
                let covered = min(needed, heightLeft)
                let weight = UInt64(covered)
                for index in sums.indices { sums[index] &+= row[index] &* weight }
                needed -= covered
                heightLeft -= covered
                if heightLeft == 0 {
                    y += 1
                    guard y < height else { break }
                    heightLeft = newHeight
                    sumColumns(of: y, into: &row)
                }
            }
            result.write(sums, row: newY, area: UInt64(width * height))
        }
        return result
    }

    /// For each pixel of a result row: the sum of what it covers of one source row, colours times
    /// alpha, and 255 times alpha.
    private func sumColumns(of y: Int, into row: inout [UInt64]) {
        let newWidth = row.count / 4
        for index in row.indices { row[index] = 0 }
        var source = y * width * 4
        var target = 0
        var needed = width
        for _ in 0..<width {
            let alpha = UInt64(pixels[source + 3])
            let red = UInt64(pixels[source]) &* alpha
            let green = UInt64(pixels[source + 1]) &* alpha
            let blue = UInt64(pixels[source + 2]) &* alpha
            source += 4
            var left = newWidth
            while left > 0 {
                let covered = min(left, needed)
                let weight = UInt64(covered)
                row[target] &+= red &* weight
                row[target + 1] &+= green &* weight
                row[target + 2] &+= blue &* weight
                row[target + 3] &+= 255 &* alpha &* weight
                left -= covered
                needed -= covered
                if needed == 0 {
                    target += 4
                    needed = width
                }
            }
        }
    }

    private func write(_ sums: [UInt64], row: Int, area: UInt64) {
        var target = row * width * 4
        for index in stride(from: 0, to: sums.count, by: 4) {
            let weight = sums[index + 3] / 255
            if weight > 0 {
                for channel in 0..<3 {
                    let mean = (sums[index + channel] + weight / 2) / weight
                    pixels[target + channel] = UInt8(truncatingIfNeeded: min(mean, 255))
                }
            }
            pixels[target + 3] = UInt8(truncatingIfNeeded: (weight + area / 2) / area)
            target += 4
        }
    }
}

/// Rotation and mirroring, by EXIF's numbers.
extension Raster {
    /// Whether width and height are swapped.
    package static func transposes(_ orientation: Int) -> Bool { (5...8).contains(orientation) }

    /// The pixels as an image of this orientation (1...8) is to be shown.
    package func oriented(_ orientation: Int) throws(ImageCodecError) -> Raster {
        guard (2...8).contains(orientation) else { return self }
        let isTransposed = Self.transposes(orientation)
        let result = try Raster(
            width: isTransposed ? height : width, height: isTransposed ? width : height)
        result.profile = profile
        // The source position of a result pixel: from a first one, in two steps.
        let (right, down) = (4, 4 * width)
        let (lastX, lastY) = (right * (width - 1), down * (height - 1))
        let (first, stepX, stepY) =
            switch orientation {
            case 2: (lastX, -right, down)
            case 3: (lastX + lastY, -right, -down)
            case 4: (lastY, right, -down)
            case 5: (0, down, right)
            case 6: (lastY, -down, right)
            case 7: (lastX + lastY, -down, -right)
            default: (lastX, down, -right)
            }
        var target = 0
        for y in 0..<result.height {
            var source = first + y * stepY
            for _ in 0..<result.width {
                for channel in 0..<4 {
                    result.pixels[target + channel] = pixels[source + channel]
                }
                target += 4
                source += stepX
            }
        }
        return result
    }
}
