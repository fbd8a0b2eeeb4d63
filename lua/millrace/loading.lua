-- The functions that load code, for code with globals of its own: loaded code gets these globals, too.

-- Sets load, loadfile, dofile and require of `globals`, whose `package` is a copy with a `path` of its own. `from` has
-- the functions that these call. They are load and loadfile, which take an environment, `find(name, path)`, as
-- package.searchpath, and `require` for a module that is not found there, such as one in C. `loaded` holds the modules
-- that require has loaded.
return function(globals, from, loaded)
  function globals.load(chunk, name, mode, ...)
    if select("#", ...) > 0 then return from.load(chunk, name, mode, ...) end
    return from.load(chunk, name, mode, globals)
  end

  function globals.loadfile(path, mode, ...)
    if select("#", ...) > 0 then return from.loadfile(path, mode, ...) end
    return from.loadfile(path, mode, globals)
  end

  function globals.dofile(path)
    local chunk, message = globals.loadfile(path)
    if not chunk then error(message, 0) end
    return chunk()
  end

  -- Returns a function that loads the module, and where it is from.
  local function loader_of(name)
    local preload = globals.package.preload[name]
    if preload then return preload, ":preload:" end
    local path = from.find(name, globals.package.path)
    if path then
      local chunk, message = globals.loadfile(path)
      if not chunk then error(("error loading module '%s' from file '%s':\n\t%s"):format(name, path, message), 3) end
      return chunk, path
    end
    local fine, value, place = pcall(from.require, name)
    if not fine then error(value, 3) end
    return function() return value end, place
  end

  function globals.require(name)
    if loaded[name] ~= nil then return loaded[name] end
    local loader, place = loader_of(name)
    local value = loader(name, place)
    if value ~= nil then loaded[name] = value
    elseif loaded[name] == nil then loaded[name] = true end
    return loaded[name], place
  end

  globals.package.loaded = loaded
end
